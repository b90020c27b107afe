package ${package};

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;

/** Names the backend, and creates it for its first model. The server finds this class in META-INF/services. */
public final class ${className}Provider implements BackendProvider {
    @Override
    public String name() {
        return "${artifactId}";
    }

    @Override
    public Backend create(BackendContext context) {
        return new ${className}Backend();
    }
}
