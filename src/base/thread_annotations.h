// Clang's -Wthread-safety attributes, spelled once; nothing under other compilers.
#pragma once

#if defined(__clang__)
#define QUARRY_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define QUARRY_THREAD_ANNOTATION(x)
#endif

#define QUARRY_CAPABILITY(x) QUARRY_THREAD_ANNOTATION(capability(x))
#define QUARRY_SCOPED_CAPABILITY QUARRY_THREAD_ANNOTATION(scoped_lockable)
#define QUARRY_GUARDED_BY(x) QUARRY_THREAD_ANNOTATION(guarded_by(x))
#define QUARRY_PT_GUARDED_BY(x) QUARRY_THREAD_ANNOTATION(pt_guarded_by(x))
#define QUARRY_ACQUIRED_BEFORE(...) QUARRY_THREAD_ANNOTATION(acquired_before(__VA_ARGS__))
#define QUARRY_ACQUIRED_AFTER(...) QUARRY_THREAD_ANNOTATION(acquired_after(__VA_ARGS__))
#define QUARRY_REQUIRES(...) QUARRY_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define QUARRY_ACQUIRE(...) QUARRY_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define QUARRY_RELEASE(...) QUARRY_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define QUARRY_TRY_ACQUIRE(...) QUARRY_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define QUARRY_EXCLUDES(...) QUARRY_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define QUARRY_ASSERT_CAPABILITY(x) QUARRY_THREAD_ANNOTATION(assert_capability(x))
#define QUARRY_RETURN_CAPABILITY(x) QUARRY_THREAD_ANNOTATION(lock_returned(x))
#define QUARRY_NO_THREAD_SAFETY_ANALYSIS QUARRY_THREAD_ANNOTATION(no_thread_safety_analysis)
