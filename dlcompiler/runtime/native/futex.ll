; Waiting in Linux by futex: the kernel compares the word and sleeps in one step.

declare i64 @syscall(i64, ...)

define internal void @waiting_reset() {
  ret void
}

; Sleep unless the word is another by now; it may be the same when this returns.
define internal void @sleep_while(ptr %word, i32 %value) {
  ; FUTEX_WAIT | FUTEX_PRIVATE_FLAG, without a limit of time
  %status = call i64 (i64, ...) @syscall(i64 ${futex}, ptr %word, i32 128, i32 %value, ptr null)
  ret void
}

; Wake so many of those that sleep on the word.
define internal void @wake(ptr %word, i32 %count) {
  ; FUTEX_WAKE | FUTEX_PRIVATE_FLAG
  %status = call i64 (i64, ...) @syscall(i64 ${futex}, ptr %word, i32 129, i32 %count)
  ret void
}
