#pragma once

namespace remy {

// Whether the library that the tests run with was compiled with sanitizers.
bool library_is_sanitized();

}  // namespace remy
