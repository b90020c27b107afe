@NullMarked
package dev.nereid.spi.function;

import org.jspecify.annotations.NullMarked;
