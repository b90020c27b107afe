/** Tests of the checks of ensembles. */
@NullMarked
package dev.nereid.server.ensemble;

import org.jspecify.annotations.NullMarked;
