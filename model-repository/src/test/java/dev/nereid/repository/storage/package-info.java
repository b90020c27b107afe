/** Tests of remote model repositories. */
@NullMarked
package dev.nereid.repository.storage;

import org.jspecify.annotations.NullMarked;
