/** Tests of the contract: faulty backends, each of which it finds. */
@NullMarked
package dev.nereid.testkit.contract;

import org.jspecify.annotations.NullMarked;
