package ${package};

import static org.junit.jupiter.api.Assertions.assertArrayEquals;

import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.LocalServer;
#if( $form == "framework" )
import java.nio.file.Path;
#end
import org.junit.jupiter.api.Test;

/** Tests the plugin in a server in memory, without jar and sockets. */
final class ${className}Test {
    @Test
    void multipliesNumbers() {
#if( $form == "framework" )
        try (LocalServer server = LocalServer.with(new ${className}Provider()).model(Path.of("models/${artifactId}")).start()) {
#else
        try (LocalServer server = LocalServer.with(new ${className}()).model("${artifactId}").start()) {
#end
            var request = server.client().request("${artifactId}").input("INPUT", Shape.of(1, 3), 1f, 2.5f, -3f);
            float[] outputs = server.send(request).one().requireOutput("OUTPUT").floats();
            assertArrayEquals(new float[] {2 * 1f, 2 * 2.5f, 2 * -3f}, outputs);
        }
    }
}
