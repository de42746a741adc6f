#pragma once

// Compiles a function a second time for processors that multiply eight 64-bit words at once; which
// of the two is called is decided when the program starts. Both do the same additions,
// multiplications, divisions and square roots of IEEE 754, none of them fused (CMakeLists.txt), so
// that their bits are equal (tests/random_test.cc). Sanitizers begin after that decision.
#if defined(__x86_64__) && defined(__linux__) && !defined(__clang__) && __GNUC__ >= 12 && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define REMY_WIDE_CLONES __attribute__((target_clones("default", "arch=x86-64-v4")))
#else
#define REMY_WIDE_CLONES
#endif
