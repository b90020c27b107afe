/** Tests of threads for tasks of plugins. */
@NullMarked
package dev.nereid.server.executor;

import org.jspecify.annotations.NullMarked;
