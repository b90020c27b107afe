package dev.nereid.testkit.server;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import java.util.function.Consumer;

/** A backend of a test, which creates its instances. Immutable. */
record TestBackend(String name, Instances instances, Consumer<ModelContext> loads) implements BackendProvider {
    /** Creates instances. */
    interface Instances {
        ModelInstance create(InstanceContext place);
    }

    TestBackend(String name, Instances instances) {
        this(name, instances, model -> {});
    }

    @Override
    public Backend create(BackendContext context) {
        return model -> {
            loads.accept(model);
            return instances::create;
        };
    }
}
