/** Tests of the life of models in a server with a real Python. */
@NullMarked
package dev.nereid.backend.python.lifecycle;

import org.jspecify.annotations.NullMarked;
