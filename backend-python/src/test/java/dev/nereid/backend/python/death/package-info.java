/** Tests of the death of processes, with a real Python in a real server. */
@NullMarked
package dev.nereid.backend.python.death;

import org.jspecify.annotations.NullMarked;
