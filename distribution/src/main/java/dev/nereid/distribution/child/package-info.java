/**
 * Checks models in a child process, which a native library can end without the end of the command.
 *
 * <p>Starting points: {@link dev.nereid.distribution.child.ParentCheck} in the parent process, and
 * {@link dev.nereid.distribution.child.ChildCheck} in the child.
 */
@NullMarked
package dev.nereid.distribution.child;

import org.jspecify.annotations.NullMarked;
