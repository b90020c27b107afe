/** The flags of the command line, and the options that they set. */
@NullMarked
package dev.nereid.distribution.flags;

import org.jspecify.annotations.NullMarked;
