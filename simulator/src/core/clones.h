#pragma once

// Compiles a function twice, the second time with AVX-512. The program chooses one of the two when
// it starts. Both execute the same IEEE 754 operations without fused multiply-add (CMakeLists.txt),
// so their results are bit-identical (tests/random_test.cc). Disabled under sanitizers, which are
// not yet initialised when the choice is made.
#if defined(__x86_64__) && defined(__linux__) && !defined(__clang__) && __GNUC__ >= 12 && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define REMY_WIDE_CLONES __attribute__((target_clones("default", "arch=x86-64-v4")))
#else
#define REMY_WIDE_CLONES
#endif
