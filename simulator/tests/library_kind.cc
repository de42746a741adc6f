#include "library_kind.h"

namespace remy {

bool library_is_sanitized() { return REMY_LIBRARY_IS_SANITIZED != 0; }

}  // namespace remy
