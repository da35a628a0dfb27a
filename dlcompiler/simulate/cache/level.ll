; Cache level ${level}. On a hit, the line becomes the latest of its set. On a miss, it takes the
; place of the line that was used least recently, and is looked for in the next level.

define internal void @find.${level}(ptr %state, i64 %word, i64 %address, i64 %write) noinline nounwind {
entry:
  %line = lshr i64 %address, ${line_shift}
  %place = and i64 %line, ${line_mask}
  %set = ${set_operation} i64 %place, ${set_operand}
  %offset = mul i64 %set, ${stride}
  %start = add i64 %offset, ${entries}
  %first = getelementptr i64, ptr %state, i64 %start
  %written = shl i64 %write, 63
  %line.four = insertelement <4 x i64> poison, i64 %line, i64 0
  %line.each = shufflevector <4 x i64> %line.four, <4 x i64> poison, <4 x i32> zeroinitializer
  br label %look
look:
  ; Four ways at a time; what fills up a set to a multiple of four is never found.
  %way = phi i64 [ 0, %entry ], [ %next, %other ]
  %at = getelementptr i64, ptr %first, i64 %way
  %found = load <4 x i64>, ptr %at, align 8
  %tags = and <4 x i64> %found, splat (i64 ${without_sign})
  %equal = icmp eq <4 x i64> %tags, %line.each
  %mask = bitcast <4 x i1> %equal to i4
  %is.hit = icmp ne i4 %mask, 0
  br i1 %is.hit, label %hit, label %other
other:
  %next = add i64 %way, 4
  %is.more = icmp ult i64 %next, ${stride}
  br i1 %is.more, label %look, label %miss
hit:
  %lane = call i4 @llvm.cttz.i4(i4 %mask, i1 true)
  %lane.wide = zext i4 %lane to i64
  %hit.way = add i64 %way, %lane.wide
  %hit.at = getelementptr i64, ptr %first, i64 %hit.way
  %own = load i64, ptr %hit.at, align 8
  %is.first = icmp eq i64 %hit.way, 0
  br i1 %is.first, label %keep, label %shift
shift:
  %to = phi i64 [ %hit.way, %hit ], [ %from, %shift ]
  %from = sub i64 %to, 1
  %from.at = getelementptr i64, ptr %first, i64 %from
  %to.at = getelementptr i64, ptr %first, i64 %to
  %earlier = load i64, ptr %from.at, align 8
  store i64 %earlier, ptr %to.at, align 8
  %is.done = icmp eq i64 %from, 0
  br i1 %is.done, label %keep, label %shift
keep:
  %kept = or i64 %own, %written
  store i64 %kept, ptr %first, align 8
  ret void
miss:
  %last.at = getelementptr i64, ptr %first, i64 ${last_way}
  %last = load i64, ptr %last.at, align 8
  %second = getelementptr i64, ptr %first, i64 1
  call void @llvm.memmove.p0.p0.i64(ptr align 8 %second, ptr align 8 %first, i64 ${moved_bytes}, i1 false)
  %new = or i64 %line, %written
  store i64 %new, ptr %first, align 8
  %count.word = add i64 %word, ${miss_column}
  call void @increment(ptr %state, i64 %count.word)
  call void @note_part(ptr %state, i64 ${level}, i64 %address)
  %was.written = icmp slt i64 %last, 0
  br i1 %was.written, label %back, label %fill
back:
  %old.line = and i64 %last, ${without_sign}
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
  %offset = mul i64 %set, ${stride}
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
