; The thread pool of parallel loops.
;
; A caller that finds the slot free lays the range out in equal shares, one per thread, opens the
; gate and works; a helper that passes the gate works too. Each starts with its own share, takes it
; chunk by chunk, and then helps with the others' shares. So nobody waits for a thread that is not
; there: the caller can do all of it. Then the caller closes the gate and waits for those inside.
;
; A caller that finds the slot taken (a loop inside a loop, or another thread's loop) runs its range
; by itself. So no thread ever waits for anything but chunks that are being executed.
;
; The gate is one word, so that a helper that comes late learns in the same step that it is inside
; and whether there is anything to do: OPEN is the sign bit, WAITING (the caller sleeps) the next,
; below them stands the number of helpers inside. It survives from launch to launch; fields of a
; launch are written before the gate opens, and read behind it.

@slot = internal global i32 0, align 64
@gate = internal global i32 0, align 64
; Counts launches and changes of @limit: what idle helpers watch.
@epoch = internal global i32 0, align 64
@sleepers = internal global i32 0, align 64
; How many sleepers a launch still wants: each wakes some, so that the caller need not wake them all.
@uncalled = internal global i32 0, align 64
; How many models run: between their kernels helpers spin longer.
@holders = internal global i32 0, align 64
; Helpers from this number on leave.
@limit = internal global i32 0, align 64
@spin_ns = internal global i64 0, align 8

@body = internal global ptr null, align 64
@env = internal global ptr null, align 8
@chunk = internal global i64 0, align 8
@count = internal global i64 0, align 8
; Next iteration and end, a cache line each.
@shares = internal global [${max_threads} x { i64, i64, [48 x i8] }] zeroinitializer, align 64

declare i32 @clock_gettime(i32, ptr)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare i32 @llvm.umin.i32(i32, i32)
${pause_declaration}

; -- what Python calls --------------------------------------------------------------------------

; Forget everything: at the start, and in a forked child, where the helpers are gone.
define void @dlc_pool_reset() {
  store atomic i32 0, ptr @slot seq_cst, align 4
  store atomic i32 0, ptr @gate seq_cst, align 4
  store atomic i32 0, ptr @sleepers seq_cst, align 4
  store atomic i32 0, ptr @limit seq_cst, align 4
  store atomic i32 0, ptr @holders seq_cst, align 4
  call void @waiting_reset()
  ret void
}

; Say how many helpers there are, and how long one that is idle spins.
define void @dlc_pool_resize(i32 %limit, i64 %spin_ns) {
  store atomic i64 %spin_ns, ptr @spin_ns seq_cst, align 8
  store atomic i32 %limit, ptr @limit seq_cst, align 4
  %old = atomicrmw add ptr @epoch, i32 1 seq_cst
  call void @wake(ptr @epoch, i32 ${max_threads})
  ret void
}

define i32 @dlc_pool_sleepers() {
  %value = load atomic i32, ptr @sleepers seq_cst, align 4
  ret i32 %value
}

; The life of a helper, by its number from 0.
define void @dlc_pool_helper(i32 %number) {
entry:
  %wide = zext i32 %number to i64
  %own = add i64 %wide, 1
  br label %look
look:
  %seen = load atomic i32, ptr @epoch acquire, align 4
  %limit = load atomic i32, ptr @limit acquire, align 4
  %surplus = icmp uge i32 %number, %limit
  br i1 %surplus, label %done, label %try
try:
  %state = load atomic i32, ptr @gate monotonic, align 4
  %seems.open = icmp slt i32 %state, 0
  br i1 %seems.open, label %enter, label %idle
enter:
  %found = atomicrmw add ptr @gate, i32 1 acq_rel
  %open = icmp slt i32 %found, 0
  br i1 %open, label %help, label %leave
help:
  call void @work(i64 %own)
  br label %leave
leave:
  %left = atomicrmw sub ptr @gate, i32 1 acq_rel
  %last = icmp eq i32 %left, ${waiting_and_one}
  br i1 %last, label %tell, label %idle
tell:
  call void @wake(ptr @gate, i32 1)
  br label %idle
idle:
  %changed = call i1 @spin_while(ptr @epoch, i32 %seen)
  br i1 %changed, label %look, label %sleep
sleep:
  %s0 = atomicrmw add ptr @sleepers, i32 1 seq_cst
  call void @sleep_while(ptr @epoch, i32 %seen)
  %s1 = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  call void @wake_some()
  br label %look
done:
  ret void
}

; -- what kernels call --------------------------------------------------------------------------

define void @dlc_parallel_for(ptr %body, ptr %env, i64 %begin, i64 %end) {
entry:
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %share, label %done
share:
  %extent = sub i64 %end, %begin
  %limit = load atomic i32, ptr @limit monotonic, align 4
  %helpers = zext i32 %limit to i64
  %threads = add i64 %helpers, 1
  %count = call i64 @llvm.umin.i64(i64 %threads, i64 %extent)
  %alone = icmp eq i64 %count, 1
  br i1 %alone, label %serial, label %try
try:
  %pair = cmpxchg ptr @slot, i32 0, i32 1 acquire monotonic
  %free = extractvalue { i32, i1 } %pair, 1
  br i1 %free, label %launch, label %serial
serial:
  call void %body(i64 %begin, i64 %end, ptr %env)
  br label %done
launch:
  store ptr %body, ptr @body, align 8
  store ptr %env, ptr @env, align 8
  call void @lay_out(i64 %begin, i64 %extent, i64 %count)
  %closed = atomicrmw or ptr @gate, i32 ${open} release
  %before = atomicrmw add ptr @epoch, i32 1 seq_cst
  %asleep = load atomic i32, ptr @sleepers seq_cst, align 4
  %others = sub i64 %count, 1
  %wanted = trunc i64 %others to i32
  %needed = call i32 @llvm.umin.i32(i32 %asleep, i32 %wanted)
  store atomic i32 %needed, ptr @uncalled monotonic, align 4
  call void @wake_some()
  br label %work
work:
  call void @work(i64 0)
  %opened = atomicrmw and ptr @gate, i32 ${not_open} acq_rel
  call void @wait_for_empty()
  store atomic i32 0, ptr @slot release, align 4
  br label %done
done:
  ret void
}

; A model that begins wakes the helpers, so that they are there for its first parallel loop; until it
; ends, an idle one spins for up to ${held_ns} ns. To wake a thread on a core that the system has put to
; sleep takes longer than most loops.
define void @dlc_pool_hold() {
entry:
  %old = atomicrmw add ptr @holders, i32 1 seq_cst
  %asleep = load atomic i32, ptr @sleepers seq_cst, align 4
  %any = icmp sgt i32 %asleep, 0
  %spin = load atomic i64, ptr @spin_ns monotonic, align 8
  %spins = icmp sgt i64 %spin, 0
  %useful = and i1 %any, %spins
  br i1 %useful, label %wake, label %done
wake:
  %before = atomicrmw add ptr @epoch, i32 1 seq_cst
  store atomic i32 %asleep, ptr @uncalled monotonic, align 4
  call void @wake_some()
  br label %done
done:
  ret void
}

define void @dlc_pool_release() {
  %old = atomicrmw sub ptr @holders, i32 1 seq_cst
  ret void
}

; -- the parts of a launch ----------------------------------------------------------------------

define internal void @lay_out(i64 %begin, i64 %extent, i64 %count) {
entry:
  store i64 %count, ptr @count, align 8
  %each = udiv i64 %extent, %count
  %rest = urem i64 %extent, %count
  %part = udiv i64 %each, ${chunks}
  %chunk = call i64 @llvm.umax.i64(i64 %part, i64 1)
  store i64 %chunk, ptr @chunk, align 8
  br label %next
next:
  %n = phi i64 [ 0, %entry ], [ %following, %next ]
  %start = phi i64 [ %begin, %entry ], [ %stop, %next ]
  %longer = icmp ult i64 %n, %rest
  %one = zext i1 %longer to i64
  %size = add i64 %each, %one
  %stop = add i64 %start, %size
  %share = getelementptr { i64, i64, [48 x i8] }, ptr @shares, i64 %n
  %limit = getelementptr i64, ptr %share, i64 1
  store atomic i64 %start, ptr %share monotonic, align 8
  store i64 %stop, ptr %limit, align 8
  %following = add i64 %n, 1
  %more = icmp ult i64 %following, %count
  br i1 %more, label %next, label %done
done:
  ret void
}

; Wake some of those that the launch still wants.
define internal void @wake_some() {
entry:
  %open = load atomic i32, ptr @uncalled monotonic, align 4
  %any = icmp sgt i32 %open, 0
  br i1 %any, label %take, label %done
take:
  %left = atomicrmw sub ptr @uncalled, i32 ${wakes} monotonic
  %still = icmp sgt i32 %left, 0
  br i1 %still, label %wake, label %done
wake:
  %number = call i32 @llvm.umin.i32(i32 %left, i32 ${wakes})
  call void @wake(ptr @epoch, i32 %number)
  br label %done
done:
  ret void
}

; Work on the own share, then on the others.
define internal void @work(i64 %own) {
entry:
  %body = load ptr, ptr @body, align 8
  %env = load ptr, ptr @env, align 8
  %chunk = load i64, ptr @chunk, align 8
  %count = load i64, ptr @count, align 8
  %first = urem i64 %own, %count
  br label %share
share:
  %n = phi i64 [ %first, %entry ], [ %wrapped, %finished ]
  %visited = phi i64 [ 1, %entry ], [ %visits, %finished ]
  %share.at = getelementptr { i64, i64, [48 x i8] }, ptr @shares, i64 %n
  %end.at = getelementptr i64, ptr %share.at, i64 1
  %end = load i64, ptr %end.at, align 8
  br label %look
look:
  %position = load atomic i64, ptr %share.at monotonic, align 8
  %left = icmp slt i64 %position, %end
  br i1 %left, label %take, label %finished
take:
  %start = atomicrmw add ptr %share.at, i64 %chunk monotonic
  %mine = icmp slt i64 %start, %end
  br i1 %mine, label %run, label %finished
run:
  %full = add i64 %start, %chunk
  %shorter = icmp slt i64 %full, %end
  %stop = select i1 %shorter, i64 %full, i64 %end
  call void %body(i64 %start, i64 %stop, ptr %env)
  br label %look
finished:
  %after = add i64 %n, 1
  %over = icmp eq i64 %after, %count
  %wrapped = select i1 %over, i64 0, i64 %after
  %visits = add i64 %visited, 1
  %more = icmp ule i64 %visits, %count
  br i1 %more, label %share, label %done
done:
  ret void
}

; Wait until no helper is inside.
define internal void @wait_for_empty() {
entry:
  br label %look
look:
  %state = load atomic i32, ptr @gate acquire, align 4
  %inside = and i32 %state, ${inside}
  %empty = icmp eq i32 %inside, 0
  br i1 %empty, label %done, label %spin
spin:
  %changed = call i1 @spin_while(ptr @gate, i32 %state)
  br i1 %changed, label %look, label %announce
announce:
  %old = atomicrmw or ptr @gate, i32 ${waiting} acq_rel
  %now = or i32 %old, ${waiting}
  %still = and i32 %old, ${inside}
  %gone = icmp eq i32 %still, 0
  br i1 %gone, label %done, label %sleep
sleep:
  call void @sleep_while(ptr @gate, i32 %now)
  br label %look
done:
  %cleared = atomicrmw and ptr @gate, i32 ${not_waiting} acq_rel
  ret void
}

; Spin until the word is another, or the time is over; tell whether it is another. The clock is read
; in each round: pauses that follow each other closely make a virtual machine give up its core.
define internal i1 @spin_while(ptr %word, i32 %value) {
entry:
  %limit = load atomic i64, ptr @spin_ns monotonic, align 8
  %start = call i64 @now()
  br label %look
look:
  %found = load atomic i32, ptr %word acquire, align 4
  %same = icmp eq i32 %found, %value
  br i1 %same, label %rest, label %changed
rest:
  ${pause}
  %time = call i64 @now()
  %spent = sub i64 %time, %start
  %early = icmp slt i64 %spent, %limit
  br i1 %early, label %look, label %ask
ask:
  %holders = load atomic i32, ptr @holders monotonic, align 4
  %held = icmp sgt i32 %holders, 0
  %spins = icmp sgt i64 %limit, 0
  %soon = icmp slt i64 %spent, ${held_ns}
  %holds = and i1 %held, %spins
  %longer = and i1 %holds, %soon
  br i1 %longer, label %look, label %late
changed:
  ret i1 true
late:
  ret i1 false
}

define internal i64 @now() {
  %time = alloca { i64, i64 }, align 8
  %status = call i32 @clock_gettime(i32 ${monotonic_clock}, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %fraction.at = getelementptr i64, ptr %time, i64 1
  %fraction = load i64, ptr %fraction.at, align 8
  %scaled = mul i64 %seconds, 1000000000
  %total = add i64 %scaled, %fraction
  ret i64 %total
}
