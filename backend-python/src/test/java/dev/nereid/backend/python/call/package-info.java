/** Tests of model calls. */
@NullMarked
package dev.nereid.backend.python.call;

import org.jspecify.annotations.NullMarked;
