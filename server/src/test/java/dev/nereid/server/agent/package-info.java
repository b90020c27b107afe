/** Tests of repository agents. */
@NullMarked
package dev.nereid.server.agent;

import org.jspecify.annotations.NullMarked;
