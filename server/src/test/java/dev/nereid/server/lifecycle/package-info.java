/** Tests of the loads of models, their generations and leases. */
@NullMarked
package dev.nereid.server.lifecycle;

import org.jspecify.annotations.NullMarked;
