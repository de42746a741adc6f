#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace remy {

// The integer part of `x` clamped to [low, high], without a branch. x is not NaN; the bounds fit.
inline std::int32_t truncate_between(double x, double low, double high) {
#if defined(__SSE2__)
  const __m128d clamped = _mm_min_sd(_mm_max_sd(_mm_set_sd(x), _mm_set_sd(low)), _mm_set_sd(high));
  return _mm_cvttsd_si32(clamped);
#else
  return static_cast<std::int32_t>(x < low ? low : (x > high ? high : x));
#endif
}

}  // namespace remy
