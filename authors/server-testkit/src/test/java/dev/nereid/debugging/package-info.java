@NullMarked
package dev.nereid.debugging;

import org.jspecify.annotations.NullMarked;
