package dev.nereid.server.plugin;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;

/** A plugin's model behind its boundary. Immutable; as safe for concurrent use as the model. */
final class IsolatedModel implements Model {
    private final Model model;
    private final PluginBoundary boundary;

    IsolatedModel(Model model, PluginBoundary boundary) {
        this.model = model;
        this.boundary = boundary;
    }

    @Override
    public ModelInstance newInstance(InstanceContext context) throws BackendException {
        return new IsolatedInstance(boundary.call("Model.newInstance", () -> model.newInstance(context)), boundary);
    }

    @Override
    public void close() {
        boundary.close("Model.close", model::close);
    }
}
