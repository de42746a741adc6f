#pragma once

namespace remy {

// True if the library under test was compiled with sanitizers.
bool library_is_sanitized();

}  // namespace remy
