declare i4 @llvm.cttz.i4(i4, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)

define internal void @increment(ptr %state, i64 %word) alwaysinline nounwind {
  %at = getelementptr i64, ptr %state, i64 %word
  %old = load i64, ptr %at, align 8
  %new = add i64 %old, 1
  store i64 %new, ptr %at, align 8
  ret void
}

; Count a miss of a level in the part of the buffer that has the address.
define internal void @note_part(ptr %state, i64 %level, i64 %address) alwaysinline nounwind {
  %buffer = lshr i64 %address, 48
  %bytes = and i64 %address, ${address_mask}
  %base.word = add i64 %buffer, ${bases}
  %base.at = getelementptr i64, ptr %state, i64 %base.word
  %base = load i64, ptr %base.at, align 8
  %shift.word = add i64 %buffer, ${part_shifts}
  %shift.at = getelementptr i64, ptr %state, i64 %shift.word
  %shift = load i64, ptr %shift.at, align 8
  %distance = sub i64 %bytes, %base
  %part = lshr i64 %distance, %shift
  %is.inside = icmp ult i64 %part, ${parts}
  %own = select i1 %is.inside, i64 %part, i64 ${last_part}
  %row = mul i64 %level, ${buffers}
  %buffer.row = add i64 %row, %buffer
  %start = mul i64 %buffer.row, ${parts}
  %within = add i64 %start, %own
  %word = add i64 %within, ${by_part}
  call void @increment(ptr %state, i64 %word)
  ret void
}
