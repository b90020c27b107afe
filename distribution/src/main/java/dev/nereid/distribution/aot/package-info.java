/** Training of the AOT cache: the requests that a fresh server is trained with. */
@NullMarked
package dev.nereid.distribution.aot;

import org.jspecify.annotations.NullMarked;
