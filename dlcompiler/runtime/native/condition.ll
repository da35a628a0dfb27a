; Waiting by a condition of POSIX threads, where there is no futex. All words share one: whoever is
; woken looks at its word again.

@mutex = internal global [128 x i8] zeroinitializer, align 64
@changed = internal global [128 x i8] zeroinitializer, align 64

declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)

define internal void @waiting_reset() {
  %s0 = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %s1 = call i32 @pthread_cond_init(ptr @changed, ptr null)
  ret void
}

; Sleep until the word is another.
define internal void @sleep_while(ptr %word, i32 %value) {
entry:
  %s0 = call i32 @pthread_mutex_lock(ptr @mutex)
  br label %look
look:
  %found = load atomic i32, ptr %word acquire, align 4
  %same = icmp eq i32 %found, %value
  br i1 %same, label %sleep, label %done
sleep:
  %s1 = call i32 @pthread_cond_wait(ptr @changed, ptr @mutex)
  br label %look
done:
  %s2 = call i32 @pthread_mutex_unlock(ptr @mutex)
  ret void
}

; Wake all that sleep: the word has been changed before. The lock is taken so that nobody is between
; its look and its sleep.
define internal void @wake(ptr %word, i32 %count) {
  %s0 = call i32 @pthread_mutex_lock(ptr @mutex)
  %s1 = call i32 @pthread_cond_broadcast(ptr @changed)
  %s2 = call i32 @pthread_mutex_unlock(ptr @mutex)
  ret void
}
