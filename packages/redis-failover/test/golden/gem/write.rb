# What the gem writes, as hashes of the shape and the order that its managers give them
# (current_nodes, node_availability_state), and floats as Ruby writes them.
require 'multi_json'

adapter, directory = ARGV
MultiJson.use(adapter.to_sym)

nodes = lambda do |master, slaves, unavailable|
  { :master => master, :slaves => slaves, :unavailable => unavailable }
end
report = lambda do |available, unavailable|
  { :available => available, :unavailable => unavailable }
end

texts = {
  'nodes' => nodes.call('10.0.0.7:6379', ['10.0.0.8:6379', '10.0.0.9:6380'], []),
  'nodes-one-down' => nodes.call('10.0.0.8:6379', ['10.0.0.9:6380'], ['10.0.0.7:6379']),
  'nodes-without-primary' => nodes.call(nil, ['10.0.0.8:6379'], ['10.0.0.7:6379']),
  'nodes-alone' => nodes.call('localhost:6379', [], []),
  'nodes-all-down' => nodes.call(nil, [], ['redis-1.example.com:6379', 'redis-2.example.com:6379']),
  'report' => report.call({ '10.0.0.7:6379' => 0.000412, '10.0.0.8:6379' => 0.012 }, []),
  'report-one-down' => report.call({ '10.0.0.8:6379' => 0.000412 }, ['10.0.0.7:6379']),
  'report-all-down' => report.call({}, ['10.0.0.7:6379', '10.0.0.8:6379']),
  'report-nothing-seen' => report.call({}, []),
  # Less than a tenth of a millisecond, and whole seconds.
  'report-latencies' => report.call({ 'a:1' => 9.1e-05, 'b:1' => 1.0e-06, 'c:1' => 1.0 }, []),
  # As its specs have them, and as a clock that stands still would give them.
  'report-integers' => report.call({ 'a:1' => 0, 'b:1' => 5 }, []),
}
texts.each do |name, hash|
  File.write("#{directory}/#{name}.txt", MultiJson.encode(hash))
end

random = Random.new(7)
floats = [0.0, 1.0, 0.1, 0.5, 0.25, 0.1 + 0.2, 100.0, 1e-4, 9.9e-5, 1.0e-5, 123456.789, 2.0**-30]
floats += Array.new(200) { (random.rand * 10**random.rand(-7..3)).round(6) }
floats += Array.new(50) { random.rand * 10**random.rand(-12..6) }
File.write("#{directory}/floats.txt", floats.map { |each| MultiJson.encode([each])[1..-2] }.join("\n") + "\n")
