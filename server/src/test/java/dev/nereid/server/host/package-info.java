/** Host policies: the processors on which the threads of instances run. */
@NullMarked
package dev.nereid.server.host;

import org.jspecify.annotations.NullMarked;
