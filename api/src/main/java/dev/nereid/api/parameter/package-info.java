/** Parameters of requests and responses: their values, and how a backend reads them. */
@NullMarked
package dev.nereid.api.parameter;

import org.jspecify.annotations.NullMarked;
