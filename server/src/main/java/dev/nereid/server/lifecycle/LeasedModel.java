package dev.nereid.server.lifecycle;

import dev.nereid.server.plugin.BackendLease;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.BatchingStrategy;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.MemoryUsage;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import java.util.List;
import java.util.Optional;

/** A model that owns a lease on its backend and releases it when it is closed. As safe for use as the model. */
record LeasedModel(Model model, BackendLease lease) implements Model {
    @Override
    public ModelInstance newInstance(InstanceContext context) throws BackendException {
        return model.newInstance(context);
    }

    @Override
    public Optional<BackendTraits.Execution> execution() {
        return model.execution();
    }

    @Override
    public Optional<BatchingStrategy> batching() throws BackendException {
        return model.batching();
    }

    @Override
    public List<MemoryUsage> memoryUsage() throws BackendException {
        return model.memoryUsage();
    }

    @Override
    public void close() {
        try {
            model.close();
        } finally {
            lease.close();
        }
    }
}
