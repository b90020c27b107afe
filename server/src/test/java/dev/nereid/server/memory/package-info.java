/** Tests of the tensor pool. */
@NullMarked
package dev.nereid.server.memory;

import org.jspecify.annotations.NullMarked;
