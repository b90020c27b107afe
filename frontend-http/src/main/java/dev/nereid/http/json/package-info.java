/** JSON parser and writer for tensors. */
@NullMarked
package dev.nereid.http.json;

import org.jspecify.annotations.NullMarked;
