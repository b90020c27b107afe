/** Runs the stress of all packages. */
@NullMarked
package dev.nereid.jcstress;

import org.jspecify.annotations.NullMarked;
