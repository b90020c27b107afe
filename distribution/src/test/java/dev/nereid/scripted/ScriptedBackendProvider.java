package dev.nereid.scripted;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;

/**
 * Provides the backend {@code scripted}, whose executions do what their requests say. A parameter of the request that is
 * named like the model has the action: {@code fail}, {@code omit}, {@code gate}, {@code cancel} or {@code mark}; see
 * {@link ScriptedInstance}. Immutable.
 */
public final class ScriptedBackendProvider implements BackendProvider {
    @Override
    public String name() {
        return "scripted";
    }

    @Override
    public Backend create(BackendContext context) {
        return new Backend() {
            @Override
            public BackendTraits traits() {
                return BackendTraits.DEFAULT.withParallelInstances();
            }

            @Override
            public Model load(ModelContext model) {
                return instance -> new ScriptedInstance(model);
            }
        };
    }
}
