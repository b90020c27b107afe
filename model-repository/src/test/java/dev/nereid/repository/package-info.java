/** Model repositories on disk: directories, configuration files and versions. */
@NullMarked
package dev.nereid.repository;

import org.jspecify.annotations.NullMarked;
