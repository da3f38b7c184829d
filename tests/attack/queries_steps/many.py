import sys; sys.path.insert(0,'/tmp/attackq')
from h import *
d='/tmp/attackq/many'; shutil.rmtree(d,ignore_errors=True); os.makedirs(d)
s=S(d+'/x.svcdb')
def mem(): return [(c[:10],int([l for l in open(f'/proc/{p}/status') if l.startswith('RssAnon')][0].split()[1])//1024,len(os.listdir(f'/proc/{p}/fd'))) for p,c in s.pids() if os.path.exists(f'/proc/{p}')]
def T(label,fn):
    t=time.time()
    try: r=fn()
    except Exception as e: r=(0,repr(e)[:100])
    print(label,r[0],round(time.time()-t,2),str(r[1])[:200]); sys.stdout.flush()
s.put('/good/a.json',{'x':1}); T('good',lambda:s.query('/good',[]))
for k in range(20):
    c={'glob':'**/*','indexes':[{'name':f'f{k}_{i}','type':['exact','trigram','fulltext','phonetic'],'source':['x']} for i in range(256)]}
    T(f'cfg{k}',lambda:s.put(f'/evil/d{k}/.svc-config/indexes.json',c)); T(' put',lambda:s.put(f'/evil/d{k}/a.json',{'x':'hello world'}))
    if k%4==0: T(' good',lambda:s.query('/good',[])); T(' get',lambda:s.q('GET','/files/good/a.json'))
print(mem())
time.sleep(8); T('good',lambda:s.query('/good',[])); T('status',lambda:(s.q('GET','/query/status')[0],'')); T('search',lambda:s.q('POST','/files/search',{'query':'hello'}))
T('root where',lambda:s.query('/',{'field':'f3_3','op':'eq','value':'hello world'}))
# fill to flush
for r in range(3):
    T('fill',lambda:(s.q('POST','/files/batch',{'operations':[{'op':'put','path':f'/good/f{r}_{i}','content':'x'} for i in range(3000)]})[0],''))
    T('good',lambda:s.query('/good',[],aggregate={'count':True})); T('get',lambda:s.q('GET','/files/good/a.json')); T('put',lambda:s.put('/good/b.json',{'x':r})); T('good strict',lambda:s.query('/good',{'field':'@filename','op':'eq','value':'b.json'}))
time.sleep(10); print(mem()); T('good strict',lambda:s.query('/good',{'field':'@filename','op':'eq','value':'b.json'}))
print(subprocess.run(f'find {d}/x.svcdb.d/views/query* | wc -l; du -sm {d}/x.svcdb.d/views/query*',shell=True,capture_output=True,text=True).stdout)
print(s.q('GET','/query/status')[1].get('unflushed'),open(d+'/x.svcdb.log').read()[-600:])
s.stop()
