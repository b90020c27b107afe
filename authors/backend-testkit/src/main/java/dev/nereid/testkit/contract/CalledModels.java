package dev.nereid.testkit.contract;

import dev.nereid.testkit.FakeModelRequest;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/**
 * The models that a backend calls. Immutable.
 *
 * @param names the names of the ready models
 * @param responder starts the response to a request; the stage completes once the responder does no more for it
 */
record CalledModels(Set<String> names, Function<FakeModelRequest, CompletableFuture<?>> responder) {
    CalledModels {
        names = Set.copyOf(names);
    }
}
