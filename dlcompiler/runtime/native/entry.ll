; The way from Python into a kernel: check arrays by the buffer protocol, and call the kernel.
;
; `dlc_enter` is a function of Python's C API (METH_FASTCALL). Its first argument is an object of
; type bytes, the plan, which `dlcompiler.runtime.entry` writes: words of 64 bits, all offsets in
; words from its begin. Buffers are held while the kernel runs, and Python's lock is not.
;
; It never raises a CallError itself: whatever is not exactly as the plan says is left to Python,
; which accepts it after all or finds the words. It returns
;   None             the kernel has run;
;   NotImplemented   nothing was called;
;   bytes            the kernel reported an error: its status, and the address that it had;
;   null             Python raised an exception before the kernel was called.

; Number of arrays, kernel, type of arrays, None, NotImplemented, what to call before or null,
; whether the kernel takes a status, number of pairs, offset of the pairs.
%plan = type { i64, ptr, ptr, ptr, ptr, ptr, i64, i64, i64 }
; Of an array: flags of the request, format as two characters, alignment - 1, dimensions, offset of
; their extents.
%array = type { i64, i64, i64, i64, i64 }
; Arrays that must not overlap: an output and another one, and between which distances [byte] of
; their addresses they do.
%pair = type { i64, i64, i64, i64 }
; Python's Py_buffer: address, object, bytes, bytes of an element, is read-only, dimensions, format,
; shape, and more.
%buffer = type { ptr, ptr, i64, i64, i32, i32, ptr, ptr, ptr, ptr, ptr }

declare ptr @PyBytes_AsString(ptr)
declare ptr @PyBytes_FromStringAndSize(ptr, i64)
declare i32 @PyObject_GetBuffer(ptr, ptr, i32)
declare void @PyBuffer_Release(ptr)
declare ptr @PyObject_CallNoArgs(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @PyErr_Clear()
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)

define ptr @dlc_enter(ptr %self, ptr %arguments, i64 %given) {
entry:
  %buffers = alloca [${most_arrays} x %buffer], align 16
  ; A kernel takes as many operands as it has; the caller may pass more.
  %operands = alloca [${most_operands} x ptr], align 16
  %status = alloca [${status_words} x i64], align 16
  %plan = call ptr @PyBytes_AsString(ptr %self)
  %count = load i64, ptr %plan, align 8
  %type.place = getelementptr %plan, ptr %plan, i64 0, i32 2
  %type = load ptr, ptr %type.place, align 8
  %arrays = getelementptr %plan, ptr %plan, i64 1
  %is_right = icmp eq i64 %given, %count
  br i1 %is_right, label %next, label %decline

next:  ; all arrays before %n are checked, and their buffers held
  %n = phi i64 [ 0, %entry ], [ %after, %take ]
  %is_last = icmp eq i64 %n, %count
  br i1 %is_last, label %overlaps, label %request

request:
  %argument.place = getelementptr ptr, ptr %arguments, i64 %n
  %argument = load ptr, ptr %argument.place, align 8
  ; The type is the last word of each object's header.
  %its_type.place = getelementptr i8, ptr %argument, i64 ${type_offset}
  %its_type = load ptr, ptr %its_type.place, align 8
  %is_array = icmp eq ptr %its_type, %type
  br i1 %is_array, label %hold, label %decline

hold:
  %array = getelementptr %array, ptr %arrays, i64 %n
  %flags.wide = load i64, ptr %array, align 8
  %flags = trunc i64 %flags.wide to i32
  %buffer = getelementptr %buffer, ptr %buffers, i64 %n
  %refused = call i32 @PyObject_GetBuffer(ptr %argument, ptr %buffer, i32 %flags)
  %is_refused = icmp ne i32 %refused, 0
  br i1 %is_refused, label %forget, label %compare

forget:
  call void @PyErr_Clear()
  br label %decline

compare:
  %after = add nuw i64 %n, 1
  %format.place = getelementptr %buffer, ptr %buffer, i64 0, i32 6
  %format.text = load ptr, ptr %format.place, align 8
  %format = load i16, ptr %format.text, align 1
  %wanted.place = getelementptr %array, ptr %array, i64 0, i32 1
  %wanted.wide = load i64, ptr %wanted.place, align 8
  %wanted = trunc i64 %wanted.wide to i16
  %is_format = icmp eq i16 %format, %wanted
  %rank.place = getelementptr %buffer, ptr %buffer, i64 0, i32 5
  %rank.narrow = load i32, ptr %rank.place, align 4
  %rank = zext i32 %rank.narrow to i64
  %dimensions.place = getelementptr %array, ptr %array, i64 0, i32 3
  %dimensions = load i64, ptr %dimensions.place, align 8
  %is_rank = icmp eq i64 %rank, %dimensions
  %address = load ptr, ptr %buffer, align 8
  %mask.place = getelementptr %array, ptr %array, i64 0, i32 2
  %mask = load i64, ptr %mask.place, align 8
  %number = ptrtoint ptr %address to i64
  %unaligned = and i64 %number, %mask
  %is_aligned = icmp eq i64 %unaligned, 0
  %is_alike = and i1 %is_format, %is_rank
  %is_fitting = and i1 %is_alike, %is_aligned
  %extents.offset.place = getelementptr %array, ptr %array, i64 0, i32 4
  %extents.offset = load i64, ptr %extents.offset.place, align 8
  %extents = getelementptr i64, ptr %plan, i64 %extents.offset
  %shape.place = getelementptr %buffer, ptr %buffer, i64 0, i32 7
  %shape = load ptr, ptr %shape.place, align 8
  br i1 %is_fitting, label %extent, label %decline.held

extent:
  %d = phi i64 [ 0, %compare ], [ %d.after, %same ]
  %is_whole = icmp eq i64 %d, %dimensions
  br i1 %is_whole, label %take, label %look

look:
  %its.place = getelementptr i64, ptr %shape, i64 %d
  %its = load i64, ptr %its.place, align 8
  %asked.place = getelementptr i64, ptr %extents, i64 %d
  %asked = load i64, ptr %asked.place, align 8
  %is_same = icmp eq i64 %its, %asked
  br i1 %is_same, label %same, label %decline.held

same:
  %d.after = add nuw i64 %d, 1
  br label %extent

take:
  %operand = getelementptr ptr, ptr %operands, i64 %n
  store ptr %address, ptr %operand, align 8
  br label %next

overlaps:
  %pairs.place = getelementptr %plan, ptr %plan, i64 0, i32 7
  %pairs = load i64, ptr %pairs.place, align 8
  %pairs.offset.place = getelementptr %plan, ptr %plan, i64 0, i32 8
  %pairs.offset = load i64, ptr %pairs.offset.place, align 8
  %pairs.begin = getelementptr i64, ptr %plan, i64 %pairs.offset
  br label %pair

pair:
  %p = phi i64 [ 0, %overlaps ], [ %p.after, %measure ]
  %is_done = icmp eq i64 %p, %pairs
  br i1 %is_done, label %prepare, label %measure

measure:
  %p.after = add nuw i64 %p, 1
  %pair.place = getelementptr %pair, ptr %pairs.begin, i64 %p
  %output = load i64, ptr %pair.place, align 8
  %other.place = getelementptr %pair, ptr %pair.place, i64 0, i32 1
  %other = load i64, ptr %other.place, align 8
  %below.place = getelementptr %pair, ptr %pair.place, i64 0, i32 2
  %below = load i64, ptr %below.place, align 8
  %above.place = getelementptr %pair, ptr %pair.place, i64 0, i32 3
  %above = load i64, ptr %above.place, align 8
  %output.slot = getelementptr i64, ptr %operands, i64 %output
  %output.address = load i64, ptr %output.slot, align 8
  %other.slot = getelementptr i64, ptr %operands, i64 %other
  %other.address = load i64, ptr %other.slot, align 8
  %distance = sub i64 %output.address, %other.address
  %is_low = icmp sgt i64 %distance, %below
  %is_high = icmp slt i64 %distance, %above
  %is_overlap = and i1 %is_low, %is_high
  br i1 %is_overlap, label %decline.all, label %pair

prepare:
  %before.place = getelementptr %plan, ptr %plan, i64 0, i32 5
  %before = load ptr, ptr %before.place, align 8
  %is_nothing = icmp eq ptr %before, null
  br i1 %is_nothing, label %start, label %call_before

call_before:
  %prepared = call ptr @PyObject_CallNoArgs(ptr %before)
  %is_raised = icmp eq ptr %prepared, null
  br i1 %is_raised, label %raise, label %drop

raise:
  call void @release(ptr %buffers, i64 %count)
  ret ptr null

drop:
  call void @Py_DecRef(ptr %prepared)
  br label %start

start:
  store i64 0, ptr %status, align 8
  %reports.place = getelementptr %plan, ptr %plan, i64 0, i32 6
  %reports = load i64, ptr %reports.place, align 8
  %has_status = icmp ne i64 %reports, 0
  %status.slot = getelementptr ptr, ptr %operands, i64 %count
  store ptr %status, ptr %status.slot, align 8
  %kernel.place = getelementptr %plan, ptr %plan, i64 0, i32 1
  %kernel = load ptr, ptr %kernel.place, align 8
${load_operands}
  %thread = call ptr @PyEval_SaveThread()
  call void %kernel(${pass_operands})
  call void @PyEval_RestoreThread(ptr %thread)
  call void @release(ptr %buffers, i64 %count)
  %code = load i64, ptr %status, align 8
  %is_error = icmp ne i64 %code, 0
  br i1 %is_error, label %report, label %finish

report:
  %last = getelementptr i64, ptr %status, i64 ${last_status_word}
  store ptr %status, ptr %last, align 8
  %told = call ptr @PyBytes_FromStringAndSize(ptr %status, i64 ${status_bytes})
  ret ptr %told

finish:
  %none.place = getelementptr %plan, ptr %plan, i64 0, i32 3
  %none = load ptr, ptr %none.place, align 8
  call void @Py_IncRef(ptr %none)
  ret ptr %none

decline:
  %held.few = phi i64 [ 0, %entry ], [ %n, %request ], [ %n, %forget ]
  br label %leave

decline.held:
  br label %leave

decline.all:
  br label %leave

leave:
  %held = phi i64 [ %held.few, %decline ], [ %after, %decline.held ], [ %count, %decline.all ]
  call void @release(ptr %buffers, i64 %held)
  %declined.place = getelementptr %plan, ptr %plan, i64 0, i32 4
  %declined = load ptr, ptr %declined.place, align 8
  call void @Py_IncRef(ptr %declined)
  ret ptr %declined
}

; Give so many buffers back.
define internal void @release(ptr %buffers, i64 %held) {
entry:
  br label %next
next:
  %n = phi i64 [ 0, %entry ], [ %after, %give ]
  %is_last = icmp eq i64 %n, %held
  br i1 %is_last, label %done, label %give
give:
  %after = add nuw i64 %n, 1
  %buffer = getelementptr %buffer, ptr %buffers, i64 %n
  call void @PyBuffer_Release(ptr %buffer)
  br label %next
done:
  ret void
}
