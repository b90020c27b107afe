/** Tests of the tensor pool. */
@NullMarked
package dev.nereid.server.classification;

import org.jspecify.annotations.NullMarked;
