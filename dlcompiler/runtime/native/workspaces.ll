; Memory for the temporaries of kernels.
;
; Blocks that a kernel is done with stay with the thread, as a list, for the next call: fresh pages
; cost more than what most kernels do with them. Sizes are rounded to eight steps per doubling, so
; that blocks fit again. Where the idle blocks of all threads together pass the limit, a thread
; gives its own back to the system; it does so too when it ends, or when the system has no memory.
;
; A block begins with a header of 64 bytes: the next block of the list, and the block's size. What a
; kernel sees comes behind it. Blocks of 2 MiB and more begin at a large page, and ask for some.

@key = internal global ${key_type} 0, align 8
; Of all threads [byte].
@idle = internal global i64 0, align 64
@idle_limit = internal global i64 0, align 8

declare i32 @pthread_key_create(ptr, ptr)
declare ptr @pthread_getspecific(${key_type})
declare i32 @pthread_setspecific(${key_type}, ptr)
declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)
declare i64 @llvm.ctlz.i64(i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
${large_pages_declaration}

; -- what Python calls --------------------------------------------------------------------------

; Once, before all else; returns 0 unless the system has no key left.
define i32 @dlc_workspace_start() {
  %status = call i32 @pthread_key_create(ptr @key, ptr @free_list)
  ret i32 %status
}

; Set the limit of idle blocks [byte] and return the one before.
define i64 @dlc_workspace_limit(i64 %limit) {
  %old = atomicrmw xchg ptr @idle_limit, i64 %limit seq_cst
  ret i64 %old
}

define i64 @dlc_workspace_idle() {
  %bytes = load atomic i64, ptr @idle seq_cst, align 8
  ret i64 %bytes
}

; Give the blocks of this thread back to the system.
define void @dlc_workspace_release() {
  %list = call ptr @own_list()
  call void @set_own_list(ptr null)
  call void @free_list(ptr %list)
  ret void
}

; Fill the idle blocks of this thread, and so many bytes of the stack below the caller, with a byte:
; what the next kernel reads of a temporary before it has written it, is that.
define void @dlc_poison(i64 %stack, i8 %byte) noinline {
entry:
  %below = alloca i8, i64 %stack, align 64
  call void @llvm.memset.p0.i64(ptr %below, i8 %byte, i64 %stack, i1 true)
  %list = call ptr @own_list()
  br label %look
look:
  %block = phi ptr [ %list, %entry ], [ %next, %fill ]
  %end = icmp eq ptr %block, null
  br i1 %end, label %done, label %fill
fill:
  %bytes.at = getelementptr i64, ptr %block, i64 1
  %bytes = load i64, ptr %bytes.at, align 8
  %payload = getelementptr i8, ptr %block, i64 64
  %size = sub i64 %bytes, 64
  call void @llvm.memset.p0.i64(ptr %payload, i8 %byte, i64 %size, i1 false)
  %next = load ptr, ptr %block, align 8
  br label %look
done:
  ret void
}

; Poison, and call a kernel at once: whatever ran between would leave its own traces on the stack. A
; kernel takes fewer operands than it gets here; it does not look at the rest.
define void @dlc_call_poisoned(i64 %stack, i8 %byte, ptr %kernel, ptr %a, ptr %b, ptr %c, ptr %d,
                               ptr %e, ptr %f, ptr %g, ptr %h) {
  call void @dlc_poison(i64 %stack, i8 %byte)
  notail call void @call_deeper(ptr %kernel, ptr %a, ptr %b, ptr %c, ptr %d, ptr %e, ptr %f, ptr %g,
                                ptr %h)
  ret void
}

; Call a kernel deeper on the stack than what dlc_poison keeps there for itself, and does not fill.
define internal void @call_deeper(ptr %kernel, ptr %a, ptr %b, ptr %c, ptr %d, ptr %e, ptr %f,
                                  ptr %g, ptr %h) noinline {
  %room = alloca [512 x i8], align 64
  store volatile i8 0, ptr %room, align 64
  notail call void %kernel(ptr %a, ptr %b, ptr %c, ptr %d, ptr %e, ptr %f, ptr %g, ptr %h)
  ret void
}

; In a forked child: the blocks of the other threads are lost with them.
define void @dlc_workspace_reset() {
entry:
  %list = call ptr @own_list()
  br label %look
look:
  %sum = phi i64 [ 0, %entry ], [ %more, %count ]
  %block = phi ptr [ %list, %entry ], [ %next, %count ]
  %end = icmp eq ptr %block, null
  br i1 %end, label %done, label %count
count:
  %bytes.at = getelementptr i64, ptr %block, i64 1
  %bytes = load i64, ptr %bytes.at, align 8
  %more = add i64 %sum, %bytes
  %next = load ptr, ptr %block, align 8
  br label %look
done:
  store atomic i64 %sum, ptr @idle seq_cst, align 8
  ret void
}

; -- what kernels call --------------------------------------------------------------------------

; Return so many bytes at a multiple of 64, or null where there is no memory.
define noalias ptr @dlc_workspace_alloc(i64 %size) {
entry:
  %absurd = icmp ugt i64 %size, ${largest_block}
  br i1 %absurd, label %failed, label %search
search:
  %bytes = call i64 @block_bytes(i64 %size)
  %list = call ptr @own_list()
  br label %look
look:
  %previous = phi ptr [ null, %search ], [ %block, %other ]
  %block = phi ptr [ %list, %search ], [ %next, %other ]
  %end = icmp eq ptr %block, null
  br i1 %end, label %fresh, label %compare
compare:
  %bytes.at = getelementptr i64, ptr %block, i64 1
  %found = load i64, ptr %bytes.at, align 8
  %next = load ptr, ptr %block, align 8
  %fits = icmp eq i64 %found, %bytes
  br i1 %fits, label %unlink, label %other
other:
  br label %look
unlink:
  %is.first = icmp eq ptr %previous, null
  br i1 %is.first, label %unlink.first, label %unlink.other
unlink.first:
  call void @set_own_list(ptr %next)
  br label %taken
unlink.other:
  store ptr %next, ptr %previous, align 8
  br label %taken
taken:
  %old = atomicrmw sub ptr @idle, i64 %bytes monotonic
  br label %give
fresh:
  %new = call ptr @new_block(i64 %bytes)
  %none = icmp eq ptr %new, null
  br i1 %none, label %make.room, label %give
make.room:
  call void @dlc_workspace_release()
  %second = call ptr @new_block(i64 %bytes)
  %none.again = icmp eq ptr %second, null
  br i1 %none.again, label %failed, label %give
give:
  %result = phi ptr [ %block, %taken ], [ %new, %fresh ], [ %second, %make.room ]
  %payload = getelementptr i8, ptr %result, i64 64
  ret ptr %payload
failed:
  ret ptr null
}

; Take a block back; null is none.
define void @dlc_workspace_free(ptr %payload) {
entry:
  %none = icmp eq ptr %payload, null
  br i1 %none, label %done, label %look
look:
  %block = getelementptr i8, ptr %payload, i64 -64
  %bytes.at = getelementptr i64, ptr %block, i64 1
  %bytes = load i64, ptr %bytes.at, align 8
  %limit = load atomic i64, ptr @idle_limit monotonic, align 8
  %before = atomicrmw add ptr @idle, i64 %bytes monotonic
  %total = add i64 %before, %bytes
  %over = icmp ugt i64 %total, %limit
  br i1 %over, label %trim, label %keep
trim:
  call void @dlc_workspace_release()
  %now = load atomic i64, ptr @idle monotonic, align 8
  %still = icmp ugt i64 %now, %limit
  br i1 %still, label %give.back, label %keep
keep:
  %list = call ptr @own_list()
  store ptr %list, ptr %block, align 8
  call void @set_own_list(ptr %block)
  ; Where the system has no memory for the thread's value, the value is still the old one.
  %kept = call ptr @own_list()
  %refused = icmp ne ptr %kept, %block
  br i1 %refused, label %give.back, label %done
give.back:
  %old = atomicrmw sub ptr @idle, i64 %bytes monotonic
  call void @free(ptr %block)
  br label %done
done:
  ret void
}

; -- the parts ----------------------------------------------------------------------------------

define internal ptr @own_list() {
  %key = load ${key_type}, ptr @key, align 8
  %list = call ptr @pthread_getspecific(${key_type} %key)
  ret ptr %list
}

define internal void @set_own_list(ptr %list) {
  %key = load ${key_type}, ptr @key, align 8
  %status = call i32 @pthread_setspecific(${key_type} %key, ptr %list)
  ret void
}

; Round a size up, with the header, to eight steps per doubling, of a page at least.
define internal i64 @block_bytes(i64 %size) {
  %total = add i64 %size, 64
  %zeros = call i64 @llvm.ctlz.i64(i64 %total, i1 false)
  %shift = sub i64 60, %zeros
  %small = icmp slt i64 %shift, 12
  %bits = select i1 %small, i64 12, i64 %shift
  %step = shl i64 1, %bits
  %less = sub i64 %step, 1
  %more = add i64 %total, %less
  %mask = sub i64 0, %step
  %bytes = and i64 %more, %mask
  ret i64 %bytes
}

define internal ptr @new_block(i64 %bytes) {
entry:
  %place = alloca ptr, align 8
  %large = icmp uge i64 %bytes, 2097152
  %alignment = select i1 %large, i64 2097152, i64 64
  %status = call i32 @posix_memalign(ptr %place, i64 %alignment, i64 %bytes)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %none, label %fill
fill:
  %block = load ptr, ptr %place, align 8
  br i1 %large, label %advise, label %done
advise:
  ${large_pages}
  br label %done
done:
  %bytes.at = getelementptr i64, ptr %block, i64 1
  store i64 %bytes, ptr %bytes.at, align 8
  ret ptr %block
none:
  ret ptr null
}

define internal void @free_list(ptr %list) {
entry:
  br label %look
look:
  %block = phi ptr [ %list, %entry ], [ %next, %drop ]
  %end = icmp eq ptr %block, null
  br i1 %end, label %done, label %drop
drop:
  %next = load ptr, ptr %block, align 8
  %bytes.at = getelementptr i64, ptr %block, i64 1
  %bytes = load i64, ptr %bytes.at, align 8
  %old = atomicrmw sub ptr @idle, i64 %bytes monotonic
  call void @free(ptr %block)
  br label %look
done:
  ret void
}
