/** Runs the stress tests of all packages. */
@NullMarked
package dev.nereid.jcstress;

import org.jspecify.annotations.NullMarked;
