/** Tests of shared memory. */
@NullMarked
package dev.nereid.server.shared;

import org.jspecify.annotations.NullMarked;
