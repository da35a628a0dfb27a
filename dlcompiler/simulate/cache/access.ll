; One access of a traced program: count it, then look for its line in the nearest cache.
;
; The state is one array of words (`model.py` says which). Each set holds its lines in the order of
; use, the latest first, so that most accesses compare once. The sign bit of an entry says that the
; line was written. The upper 16 bits of an address are the number of its buffer; the set follows
; from the lower 48 alone.

define internal void @dlc_extern.cache_access(ptr %state, i64 %row, i64 %address, i64 %write) ${inlining} nounwind {
entry:
  %left = load i64, ptr %state, align 8
  %is.over = icmp eq i64 %left, 0
  br i1 %is.over, label %next, label %count
next:
  %goes.on = call i1 @next_bin(ptr %state)
  br i1 %goes.on, label %renewed, label %done
renewed:
  %fresh = load i64, ptr %state, align 8
  br label %count
count:
  %now = phi i64 [ %left, %entry ], [ %fresh, %renewed ]
  %less = sub i64 %now, 1
  store i64 %less, ptr %state, align 8
  %bin.at = getelementptr i64, ptr %state, i64 1
  %bin = load i64, ptr %bin.at, align 8
  %word = add i64 %bin, %row
  %counter = getelementptr i64, ptr %state, i64 %word
  %counted = load i64, ptr %counter, align 8
  %more = add i64 %counted, 1
  store i64 %more, ptr %counter, align 8
  %line = lshr i64 %address, ${line_shift}
  %place = and i64 %line, ${line_mask}
  %set = ${set_operation} i64 %place, ${set_operand}
  %offset = mul i64 %set, ${stride}
  %start = add i64 %offset, ${entries}
  %first = getelementptr i64, ptr %state, i64 %start
  %latest = load i64, ptr %first, align 8
  %tag = and i64 %latest, ${without_sign}
  %is.latest = icmp eq i64 %tag, %line
  br i1 %is.latest, label %hit, label %search
hit:
  %written = shl i64 %write, 63
  %kept = or i64 %latest, %written
  store i64 %kept, ptr %first, align 8
  br label %done
search:
  call void @find.0(ptr %state, i64 %word, i64 %address, i64 %write)
  br label %done
done:
  ret void
}

; Begin the next interval of time; return whether the simulation goes on.
define internal i1 @next_bin(ptr %state) noinline nounwind {
entry:
  %cancelled.at = getelementptr i64, ptr %state, i64 5
  %cancelled = load atomic i64, ptr %cancelled.at monotonic, align 8
  %is.cancelled = icmp ne i64 %cancelled, 0
  br i1 %is.cancelled, label %end, label %renew
renew:
  %length.at = getelementptr i64, ptr %state, i64 2
  %length = load i64, ptr %length.at, align 8
  store i64 %length, ptr %state, align 8
  %bin.at = getelementptr i64, ptr %state, i64 1
  %bin = load i64, ptr %bin.at, align 8
  %last.at = getelementptr i64, ptr %state, i64 4
  %last = load i64, ptr %last.at, align 8
  %is.last = icmp uge i64 %bin, %last
  br i1 %is.last, label %on, label %advance
advance:
  %size.at = getelementptr i64, ptr %state, i64 3
  %size = load i64, ptr %size.at, align 8
  %following = add i64 %bin, %size
  store i64 %following, ptr %bin.at, align 8
  br label %on
on:
  ret i1 true
end:
  ret i1 false
}
