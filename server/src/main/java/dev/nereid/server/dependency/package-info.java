/** Models that need other models: their order, cycles, and what is unloaded with what. */
@NullMarked
package dev.nereid.server.dependency;

import org.jspecify.annotations.NullMarked;
