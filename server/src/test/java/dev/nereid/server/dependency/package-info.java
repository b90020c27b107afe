/** Tests of dependencies between models. */
@NullMarked
package dev.nereid.server.dependency;

import org.jspecify.annotations.NullMarked;
