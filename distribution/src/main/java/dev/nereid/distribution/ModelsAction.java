package dev.nereid.distribution;

import dev.nereid.distribution.client.RequestException;
import dev.nereid.distribution.client.ServerClient;
import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.report.TextTable;
import io.vertx.core.json.DecodeException;
import io.vertx.core.json.JsonArray;
import io.vertx.core.json.JsonObject;

/** Lists the models of a running server. Confined to the thread of its command. */
final class ModelsAction implements ClientAction {
    private boolean json;

    @Override
    public void declare(Flags flags) {
        flags.toggle("--json", () -> json = true).help("Prints the JSON of the server.");
    }

    @Override
    public String run(ServerClient server) throws RequestException, InterruptedException {
        String index = server.index();
        try {
            String table = table(new JsonArray(index)); // checks the form in any case
            return json ? index + "\n" : table;
        } catch (DecodeException | ClassCastException e) {
            throw server.unexpectedResponse();
        }
    }

    private static String table(JsonArray models) {
        TextTable table = new TextTable("MODEL", "VERSION", "STATE", "REASON");
        for (int i = 0; i < models.size(); i++) {
            JsonObject model = models.getJsonObject(i);
            table.add(
                    model.getString("name", "-"),
                    model.getString("version", "-"),
                    model.getString("state", "-"),
                    model.getString("reason", ""));
        }
        return table.toString();
    }
}
