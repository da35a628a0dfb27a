; Cache level ${level}. On a hit, the line becomes the latest of its set. On a miss, it takes the
; place of the line that was used least recently, and is looked for in the next level.

define internal void @find.${level}(ptr %state, i64 %word, i64 %address, i64 %write) noinline nounwind {
entry:
  %line = lshr i64 %address, ${line_shift}
  %place = and i64 %line, ${line_mask}
  %set = ${set_operation} i64 %place, ${set_operand}
  %offset = mul i64 %set, ${ways}
  %start = add i64 %offset, ${entries}
  %first = getelementptr i64, ptr %state, i64 %start
  %written = shl i64 %write, 63
  br label %look
look:
  ; Each line before the wanted one moves to the next way.
  %way = phi i64 [ 0, %entry ], [ %next, %shift ]
  %earlier = phi i64 [ %line, %entry ], [ %found, %shift ]
  %at = getelementptr i64, ptr %first, i64 %way
  %found = load i64, ptr %at, align 8
  store i64 %earlier, ptr %at, align 8
  %tag = and i64 %found, ${without_sign}
  %is.hit = icmp eq i64 %tag, %line
  br i1 %is.hit, label %hit, label %shift
shift:
  %next = add i64 %way, 1
  %is.more = icmp ult i64 %next, ${ways}
  br i1 %is.more, label %look, label %miss
hit:
  %kept = or i64 %found, %written
  store i64 %kept, ptr %first, align 8
  ret void
miss:
  %new = or i64 %line, %written
  store i64 %new, ptr %first, align 8
  %count.word = add i64 %word, ${miss_column}
  call void @increment(ptr %state, i64 %count.word)
  call void @note_part(ptr %state, i64 ${level}, i64 %address)
  %was.written = icmp slt i64 %found, 0
  br i1 %was.written, label %back, label %fill
back:
  %old.line = and i64 %found, ${without_sign}
  %old.address = shl i64 %old.line, ${line_shift}
  call void @write_back.${level}(ptr %state, i64 %old.address)
  br label %fill
fill:
  ${fetch}
  ret void
}

; A written line leaves this level: the next level notes that its copy is newer than memory. A level
; that no longer has the line hands it on.
define internal void @write_back.${level}(ptr %state, i64 %address) noinline nounwind {
entry:
  %buffer = lshr i64 %address, 48
  %count.word = add i64 %buffer, ${written}
  call void @increment(ptr %state, i64 %count.word)
  ${hand_on}
  ret void
}

; Mark the line of an address as written, without using it; return whether it is there.
define internal i1 @mark.${level}(ptr %state, i64 %address) noinline nounwind {
entry:
  %line = lshr i64 %address, ${line_shift}
  %place = and i64 %line, ${line_mask}
  %set = ${set_operation} i64 %place, ${set_operand}
  %offset = mul i64 %set, ${ways}
  %start = add i64 %offset, ${entries}
  br label %look
look:
  %way = phi i64 [ 0, %entry ], [ %next, %other ]
  %word = add i64 %start, %way
  %at = getelementptr i64, ptr %state, i64 %word
  %found = load i64, ptr %at, align 8
  %tag = and i64 %found, ${without_sign}
  %is.hit = icmp eq i64 %tag, %line
  br i1 %is.hit, label %hit, label %other
other:
  %next = add i64 %way, 1
  %is.more = icmp ult i64 %next, ${ways}
  br i1 %is.more, label %look, label %absent
hit:
  %marked = or i64 %found, ${sign}
  store i64 %marked, ptr %at, align 8
  ret i1 true
absent:
  ret i1 false
}
