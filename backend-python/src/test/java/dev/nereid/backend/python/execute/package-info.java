/** Tests of executions, with servers in memory and a real Python. */
@NullMarked
package dev.nereid.backend.python.execute;

import org.jspecify.annotations.NullMarked;
