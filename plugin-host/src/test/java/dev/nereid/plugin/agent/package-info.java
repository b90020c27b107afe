/** Tests of repository agents. */
@NullMarked
package dev.nereid.plugin.agent;

import org.jspecify.annotations.NullMarked;
