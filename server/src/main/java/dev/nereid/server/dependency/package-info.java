/** Dependencies between models: their order, cycles, and joint unloads. */
@NullMarked
package dev.nereid.server.dependency;

import org.jspecify.annotations.NullMarked;
