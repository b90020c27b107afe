package dev.nereid.server.instance;

import dev.nereid.server.response.ResponseHolder;
import java.util.concurrent.CompletableFuture;

/** A model without anything to release. */
record FakeOwner(ResponseHolder responses) implements BackendInstance.Owner {
    @Override
    public void startGoesOn(CompletableFuture<Void> start) {}

    @Override
    public void closeInstance(String name, Runnable close) {
        close.run();
    }
}
