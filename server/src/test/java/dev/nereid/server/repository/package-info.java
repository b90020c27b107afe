/** Tests of repositories and of the life of models. */
@NullMarked
package dev.nereid.server.repository;

import org.jspecify.annotations.NullMarked;
